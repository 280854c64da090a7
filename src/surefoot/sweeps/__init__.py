"""Many runs in one folder, on several processes."""
