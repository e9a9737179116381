/** One word for the next page of this tab; read once, then gone. */

export function leave(name, word) {
  sessionStorage.setItem(name, word)
}

export function take(name) {
  const word = sessionStorage.getItem(name)
  sessionStorage.removeItem(name)
  return word
}
