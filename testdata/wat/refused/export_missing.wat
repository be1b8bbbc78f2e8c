;; Exports nothing that can be called.
(module
  (memory (export "memory") 1))
