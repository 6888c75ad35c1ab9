"""Claims, tables and plots of the committed results."""
