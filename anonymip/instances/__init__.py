"""Instances: tables, attributes, hierarchies, domains; readers, generators, named instances."""

from anonymip.instances.attribute import Attribute
from anonymip.instances.domains import Domains
from anonymip.instances.hierarchies.codes import CodeRule
from anonymip.instances.hierarchies.hierarchy import Hierarchy, read_hierarchy
from anonymip.instances.inspection import InspectedColumn, Inspection, inspect
from anonymip.instances.library.fetching import data_directory
from anonymip.instances.library.generators import census
from anonymip.instances.library.named import INSTANCES, NamedInstance, load_instance
from anonymip.instances.microdata import Microdata, RowTypes
from anonymip.instances.readers import read_table
from anonymip.instances.schema import Schema, read_schema
from anonymip.instances.table_format import TableFormat

__all__ = [
    "INSTANCES",
    "Attribute",
    "CodeRule",
    "Domains",
    "Hierarchy",
    "InspectedColumn",
    "Inspection",
    "Microdata",
    "NamedInstance",
    "RowTypes",
    "Schema",
    "TableFormat",
    "census",
    "data_directory",
    "inspect",
    "load_instance",
    "read_hierarchy",
    "read_schema",
    "read_table",
]
