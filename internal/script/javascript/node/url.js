// What node:url has of the Web's URL, and the two functions that turn a URL into a path and back. Its older functions (parse, format, resolve) are not here.
const { URL, URLSearchParams } = globalThis;
export { URL, URLSearchParams };

export function fileURLToPath(url) {
  const { protocol, hostname, pathname } = new URL(url);
  if (protocol !== "file:") {
    throw new TypeError("The URL must be of scheme file");
  }
  if (hostname !== "") {
    throw new TypeError('File URL host must be "localhost" or empty on linux');
  }
  if (/%2f/i.test(pathname)) {
    throw new TypeError("File URL path must not include encoded / characters");
  }
  return decodeURIComponent(pathname);
}

export function pathToFileURL(path) {
  const url = new URL("file:///");
  url.pathname = path.replace(/[%\\\n\r\t?#]/g, encodeURIComponent);
  return url;
}

export default { URL, URLSearchParams, fileURLToPath, pathToFileURL };
