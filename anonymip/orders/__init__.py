"""Orders of the records that several rooms cut or link."""
