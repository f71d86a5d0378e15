"""The built-in integrators, one small file a family, registered as any third party's are."""
