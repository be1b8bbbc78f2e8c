const bytes = (...list) => new Uint8Array(list);
const decode = (list, label, options) => new TextDecoder(label, options).decode(bytes(...list));
const chunks = (label, options, ...lists) => {
  const decoder = new TextDecoder(label, options);
  return lists.map((list, i) => decoder.decode(bytes(...list), { stream: i < lists.length - 1 }));
};

const cases = {
  encode: () => ["", "a", "\0", "é€𝄞", "\ud800", "\udc00x", "a\ud83d", undefined, null, 12].map((s) => new TextEncoder().encode(s)),
  encoding: () => [new TextEncoder().encoding, String(new TextEncoder()), new TextDecoder("UTF8").encoding],
  "encode into": () => [["abc", 2], ["é€𝄞", 9], ["é€𝄞", 8], ["€", 2], ["\ud800!", 4], ["", 0]].map(([s, n]) => {
    const to = new Uint8Array(n);
    return [new TextEncoder().encodeInto(s, to), to];
  }),
  "encode into no bytes": () => new TextEncoder().encodeInto("a", new Uint16Array(1)),
  "decode nothing": () => [new TextDecoder().decode(), decode([])],
  decode: () => decode([0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9d, 0x84, 0x9e, 0x41, 0]),
  "decode a view": () => new TextDecoder().decode(new DataView(bytes(65, 66, 67, 68).buffer, 1, 2)),
  "decode a buffer": () => new TextDecoder().decode(bytes(65, 66).buffer),
  "decode 16 bits": () => new TextDecoder().decode(new Uint16Array([0x4241])),
  "decode text": () => new TextDecoder().decode("a"),
  ...Object.fromEntries([
    [0x80], [0xc0, 0x80], [0xc1, 0xbf], [0xc3], [0xc3, 0x28], [0xe0, 0x80, 0x80], [0xe2, 0x82], [0xe2, 0x28, 0xa1], [0xed, 0xa0, 0x80], [0xf0, 0x80, 0x80, 0x80],
    [0xf0, 0x9d, 0x84], [0xf0, 0x9d, 0x84, 0x41], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xff, 0xfe], [0x41, 0xe2, 0x82, 0x41, 0xf0, 0x90, 0x42],
  ].map((list) => [`invalid ${list}`, () => [decode(list), (() => {
    try {
      return decode(list, "utf-8", { fatal: true });
    } catch (error) {
      return error;
    }
  })()]])),
  "byte order mark": () => [decode([0xef, 0xbb, 0xbf, 65]), decode([0xef, 0xbb, 0xbf, 65], "utf-8", { ignoreBOM: true }), decode([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf])],
  stream: () => [
    chunks("utf-8", {}, [0xe2], [0x82], [0xac]), chunks("utf-8", {}, [0xe2, 0x82], [0x41]), chunks("utf-8", {}, [0xf0, 0x9d], [0x84, 0x9e, 0xc3], []),
    chunks("utf-8", {}, [0xef], [0xbb], [0xbf, 65], [0xef, 0xbb, 0xbf]), chunks("utf-8", {}, [0xed], [0xa0], [0x80]), chunks("utf-16le", {}, [0x34, 0xd8], [0x1e], [0xdd, 65], [0]),
  ],
  "a decoder again": () => {
    const decoder = new TextDecoder();
    return [decoder.decode(bytes(0xe2), { stream: true }), decoder.decode(), decoder.decode(bytes(65))];
  },
  "utf-16": () => [decode([65, 0, 0xac, 0x20], "utf-16"), decode([0, 65, 0x20, 0xac], "utf-16be"), decode([65], "utf-16le"), decode([0, 0xd8, 65, 0], "utf-16le"), decode([0xff, 0xfe, 65, 0], "utf-16le")],
  "utf-16 fatal": () => decode([0, 0xd8], "utf-16le", { fatal: true }),
  latin: () => [decode([0x41, 0xa0, 0xe9, 0xff], "latin1"), new TextDecoder(" ISO-8859-1\n").encoding, new TextDecoder("ascii").encoding],
  "no such label": () => new TextDecoder("klingon"),
  options: () => [new TextDecoder("utf-8", { fatal: 1, ignoreBOM: true }).fatal, new TextDecoder().fatal, new TextDecoder().ignoreBOM],
  many: () => new TextDecoder().decode(new TextEncoder().encode("aé€𝄞".repeat(20000))) === "aé€𝄞".repeat(20000),
  base64: () => [btoa("hé\0"), atob(" aG\nk= "), atob(""), btoa("")],
  "base64 of more than bytes": () => btoa("€"),
  "base64 that is not valid": () => atob("a"),
};
