import { ConfigurationError } from './errors'
import { withOwnMessage } from './logger'
import { areSealingKeys, openText, readSealingKeys, sealText } from './sealing'

/** Encrypts texts that have to be read again. Made by `sealer()`. */
export interface Sealer {
  /** Returns the text encrypted, under a nonce of its own, in letters, digits, `-`, `_` and `.`: `v1.nonce.sealed.tag`. */
  seal(text: string): string
  /** @throws Error when no key opens it, or it was changed */
  open(text: string): string
}

/**
 * Returns a sealer for secrets of your own, such as the tokens that `onProviderTokens` gets (AES-256-GCM).
 * @param key 32 random bytes in base64; several, separated by commas: the first seals, all open
 * @throws ConfigurationError for any other key
 */
export function sealer(key: string): Sealer {
  if (typeof key !== 'string' || !areSealingKeys(key))
    throw new ConfigurationError('sealer: key must be 32 random bytes in base64; several, separated by commas: the first seals, all open.')
  const keys = readSealingKeys(key)
  const purpose = 'doorward/sealer'
  return Object.freeze({
    seal: (text: string) => sealText(keys, purpose, text),
    open(sealed: string) {
      const text = typeof sealed === 'string' ? openText(keys, purpose, sealed) : null
      if (text === null) throw withOwnMessage(new Error('sealer: none of the keys opens this text, or it was changed.'))
      return text
    },
  })
}
