// crypto, as far as it is random: getRandomValues and randomUUID. Both ask the host each time.
(function (host, engine) {
  const most = 65536; // bytes at a time, as elsewhere

  function fill(view) {
    host.random(view.buffer, view.byteOffset, view.byteLength);
    return view;
  }

  class Crypto {
    getRandomValues(array) {
      const name = ArrayBuffer.isView(array) ? array[Symbol.toStringTag] : undefined; // undefined of a DataView's own prototype, too
      if (!/^(Big)?(Ui|I)nt\d+(Clamped)?Array$/.test(name)) {
        throw new DOMException("crypto.getRandomValues fills typed arrays of whole numbers", "TypeMismatchError");
      }
      if (array.byteLength > most) {
        throw new DOMException(`crypto.getRandomValues: ${array.byteLength} bytes are more than ${most}, which it fills at a time`, "QuotaExceededError");
      }
      return fill(array);
    }

    randomUUID() {
      const bytes = fill(new Uint8Array(16));
      bytes[6] = bytes[6] & 0x0f | 0x40;
      bytes[8] = bytes[8] & 0x3f | 0x80;
      return bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    }
  }

  engine.defineClasses({ Crypto });
  engine.define({ crypto: new Crypto() });
})
