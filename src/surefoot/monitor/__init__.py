"""Is the plant what was declared?"""
