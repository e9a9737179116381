import { ConfigurationError } from './errors'
import { withOwnMessage } from './logger'
import { areSealingKeys, openText, readSealingKeys, sealText } from './sealing'

/** Encrypts texts that the app must read again. `sealer()` creates it. */
export interface Sealer {
  /** Encrypts the text with a new nonce. Returns `v1.nonce.sealed.tag`, which contains only letters, digits, `-`, `_` and `.`. */
  seal(text: string): string
  /**
   * Returns the decrypted text.
   * @throws Error if no key decrypts the text, or if the text was changed
   */
  open(text: string): string
}

/**
 * Returns a sealer for your own secrets, for example the tokens that `onProviderTokens` receives (AES-256-GCM).
 * @param key 32 random bytes in base64, or several keys separated by commas: the first key encrypts, and all keys decrypt
 * @throws ConfigurationError for any other key
 */
export function sealer(key: string): Sealer {
  if (typeof key !== 'string' || !areSealingKeys(key))
    throw new ConfigurationError(
      'sealer: key must be 32 random bytes in base64; several keys, separated by commas: the first key encrypts, all keys decrypt.',
    )
  const keys = readSealingKeys(key)
  const purpose = 'doorward/sealer'
  return Object.freeze({
    seal: (text: string) => sealText(keys, purpose, text),
    open(sealed: string) {
      const text = typeof sealed === 'string' ? openText(keys, purpose, sealed) : null
      if (text === null) throw withOwnMessage(new Error('sealer: no key can decrypt this text, or the text was changed.'))
      return text
    },
  })
}
