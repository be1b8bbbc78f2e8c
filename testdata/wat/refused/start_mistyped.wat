;; Has a _start of another type.
(module
  (memory (export "memory") 1)
  (func (export "_start") (param i32)))
