"""What a log says about a declaration: ``surefoot.calibrate``."""
