"""callboard as a program: the command line, the demo, and recorded conversations played again."""
