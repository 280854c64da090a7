"""Any learner inside the certificate: an environment that lets only certified actions through."""
