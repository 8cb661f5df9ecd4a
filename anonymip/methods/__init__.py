"""The registry of methods: specs as data, functions loaded on use."""

from anonymip.methods.registry import METHODS as METHODS
from anonymip.methods.registry import find_method as find_method
from anonymip.methods.registry import is_built_in as is_built_in
from anonymip.methods.registry import refuse_unfit as refuse_unfit
from anonymip.methods.registry import register_method as register_method
from anonymip.methods.spec import MethodOption as MethodOption
from anonymip.methods.spec import MethodSpec as MethodSpec
