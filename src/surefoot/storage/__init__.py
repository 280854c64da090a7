"""The only code that writes or parses files."""
