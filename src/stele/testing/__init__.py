"""What tests of Stele and of its plug-ins share: conformance suites and the tools they need."""
