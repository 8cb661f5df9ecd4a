"""Tables larger than memory, or than one machine: parts of them, solved wherever there is room.

A table is cut into parts by values of its quasi-identifiers; each part is solved, published and
verified as a table of its own under the domains of the whole. Who does the work, this process or a
cluster of Dask, makes no difference to what comes out.
"""
