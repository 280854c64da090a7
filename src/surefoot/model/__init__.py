"""What is known: the declaration of a problem and the arrays it becomes."""
