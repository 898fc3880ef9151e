"""The pages, a module for each noun: views, the structs they return, and the list of pages."""
