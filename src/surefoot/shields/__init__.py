"""Any learner inside the certificate: an environment that lets certified actions through and no others."""
