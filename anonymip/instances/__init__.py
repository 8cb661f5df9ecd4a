"""Instances: tables, attributes, hierarchies, domains; readers, generators, named instances."""

from anonymip.instances.attribute import Attribute as Attribute
from anonymip.instances.domains import Domains as Domains
from anonymip.instances.hierarchies.codes import CodeRule as CodeRule
from anonymip.instances.hierarchies.hierarchy import Hierarchy as Hierarchy
from anonymip.instances.hierarchies.hierarchy import read_hierarchy as read_hierarchy
from anonymip.instances.inspection import InspectedColumn as InspectedColumn
from anonymip.instances.inspection import Inspection as Inspection
from anonymip.instances.inspection import inspect as inspect
from anonymip.instances.library.fetching import data_directory as data_directory
from anonymip.instances.library.generators import census as census
from anonymip.instances.library.named import INSTANCES as INSTANCES
from anonymip.instances.library.named import NamedInstance as NamedInstance
from anonymip.instances.library.named import load_instance as load_instance
from anonymip.instances.microdata import Microdata as Microdata
from anonymip.instances.microdata import RowTypes as RowTypes
from anonymip.instances.readers import read_table as read_table
from anonymip.instances.schema import Schema as Schema
from anonymip.instances.schema import read_schema as read_schema
from anonymip.instances.table_format import TableFormat as TableFormat
