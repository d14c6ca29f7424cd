; Light in a waveguide.
(set! geometry-lattice (make lattice (size 12 8 no-size)))
(set! geometry (list (make block (center 0 0) (size infinity 1 infinity) (material (make dielectric (epsilon 12))))))
(set! sources (list (make source (src (make continuous-src (frequency 0.15))) (component Ez) (center -5 0))))
(set! pml-layers (list (make pml (thickness 1.0))))
(set! resolution 10)
(run-until 60 (at-every 20 (lambda () (print "field " (real-part (get-field-point Ez (vector3 2 0 0))) "\n"))))
