#include <math.h>

static const double ln2 = 0x1.62e42fefa39efp-1;

// log2 takes the place of the compiler's, which is off by 3e-7 for numbers near the smallest. This is exact for powers of 2.
double log2(double x) {
    if (!(x > 0) || isinf(x)) return log(x);
    int exponent;
    double mantissa = frexp(x, &exponent); // from 0.5 to 1
    // The parts have the same sign, so that neither takes away what the other is exact in.
    if (x >= 1) return log(2 * mantissa) / ln2 + (exponent - 1);
    return log(mantissa) / ln2 + exponent;
}
