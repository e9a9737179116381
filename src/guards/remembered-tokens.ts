export interface RememberedTokens<T> {
  find(token: string): T | undefined
  keep(token: string, value: T): void
  /** The most tokens there can be. A token that was found again may be counted in both generations. */
  readonly size: number
}

/** Our own tokens have a few hundred characters. With this limit a remembered token takes at most about 4 KiB. */
const longest = 2048

/**
 * Remembers at most `limit` tokens by their whole text. There are two generations: a full one becomes the old one, and the old one is dropped
 * as a whole. So no request has to pay for the removal of many tokens. A token that is found again moves to the new generation.
 */
export function rememberedTokens<T>(limit: number): RememberedTokens<T> {
  const perGeneration = Math.max(1, Math.floor(limit / 2))
  let young = new Map<string, T>()
  let old = new Map<string, T>()

  function put(token: string, value: T): void {
    if (young.size >= perGeneration) {
      old = limit > 1 ? young : new Map()
      young = new Map()
    }
    young.set(token, value)
  }

  return {
    find(token) {
      const found = young.get(token)
      if (found !== undefined || old.size === 0) return found
      const again = old.get(token)
      if (again !== undefined) put(token, again)
      return again
    },
    keep(token, value) {
      if (limit === 0 || token.length > longest) return
      put(token, value)
    },
    get size() {
      return young.size + old.size
    },
  }
}
