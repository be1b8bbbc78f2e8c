// What node:crypto has of randomness. The engine has no digests and no ciphers.
const { crypto } = globalThis;
export const webcrypto = crypto;
export const getRandomValues = (array) => crypto.getRandomValues(array);
export const randomUUID = () => crypto.randomUUID();

// randomInt returns a whole number from low to high - 1, each as likely.
export function randomInt(low, high) {
  if (high === undefined) {
    [low, high] = [0, low];
  }
  const range = high - low;
  if (!Number.isSafeInteger(low) || !Number.isSafeInteger(high) || range <= 0 || range > 2 ** 48 - 1) {
    throw new RangeError("randomInt takes two whole numbers; the second must be greater, by less than 2 ** 48");
  }
  const limit = 2 ** 48 - (2 ** 48 % range);
  for (;;) {
    const [a, b] = crypto.getRandomValues(new Uint32Array(2));
    const drawn = (a & 0xffff) * 2 ** 32 + b;
    if (drawn < limit) {
      return low + (drawn % range);
    }
  }
}

export default { webcrypto, getRandomValues, randomUUID, randomInt };
