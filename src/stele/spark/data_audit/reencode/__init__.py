"""How records are written anew: by columns within one schema language, by values from one to another."""
