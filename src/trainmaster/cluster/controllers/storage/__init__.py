"""Claims and volumes: who gets which, what is made for whom, and what becomes of it afterwards."""
