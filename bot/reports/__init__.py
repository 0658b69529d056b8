"""The weekly report on one week of questions, for one channel or the terminal."""
