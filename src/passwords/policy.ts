import { randomInt } from 'node:crypto'
import { ConfigurationError } from '../errors'
import type { PasswordPolicy } from './password-hasher'

/** The visible ASCII characters, '!' to '~'. */
const characters = Array.from({ length: 94 }, (_, index) => String.fromCharCode(0x21 + index))

/** 94 to the power of 24 is 2 to the power of 157: well above 128 bits after the classes took their share. */
const usualLength = 24

/** 94 to the power of 20 is 2 to the power of 131, and a fifth of it misses a class: the least that keeps 128 bits. */
const leastLength = 20

/**
 * A password nobody knows, for an account that signs in through a provider: every class of the policy at least once,
 * never shorter than `minLength`, never longer than `maxBytes`, and at least 128 bits. Drawn again until it holds every
 * class, so that each password that does is equally likely. `check` is not asked: it judges what people choose.
 *
 * @throws ConfigurationError when the policy leaves no room for 128 bits.
 */
export function generatePassword(policy: Pick<PasswordPolicy, 'minLength' | 'maxBytes' | 'requireComplexity'> = {}): string {
  const { minLength = 0, maxBytes = Number.POSITIVE_INFINITY } = policy
  const length = Math.max(minLength, Math.min(usualLength, maxBytes))
  if (!Number.isSafeInteger(length) || length > maxBytes || length < leastLength) {
    throw new ConfigurationError(
      `The password policy leaves no room for a generated password: maxBytes must be at least ${leastLength} and at least minLength, both whole numbers.`,
    )
  }
  for (;;) {
    const password = Array.from({ length }, () => characters[randomInt(characters.length)]).join('')
    if (holdsEveryClass(password)) return password
  }
}

function holdsEveryClass(password: string): boolean {
  return [/[a-z]/, /[A-Z]/, /[0-9]/, /[^a-zA-Z0-9]/].every((characterClass) => characterClass.test(password))
}
