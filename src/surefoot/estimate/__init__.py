"""What the data say: ridge regressions and the confidence bounds that they carry."""
