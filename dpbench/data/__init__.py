from dpbench.later import UNUSED, import_later

for _name in UNUSED:  # every command comes by here before scipy is imported
    import_later(_name)
