import type { Logger } from '../core/logger'
import { askHost } from './ask-host'
import { isGuessable } from './guessable'
import { normalPassword } from './hash-password'
import { passwordRefusal } from './password-refusal'
import type { PasswordPolicy } from './password-types'

/**
 * Rejects a password that a person may not choose (NIST SP 800-63B section 3.1.1.2). The rules, in order:
 * - `malformed`: half of a UTF-16 pair. All such halves become the same character after encoding, so different passwords would be equal.
 * The routes reject a body with such a half. For calls without HTTP, this is the only check.
 * - `too_short` { min } code points, `too_long` { max } bytes of UTF-8, `missing_classes` { missing }, `too_common`.
 * - The host's own rule, by the rule's name.
 *
 * @throws ValidationError with flat details { rule, ... }, never with the password
 */
export async function checkPassword(
  ctx: { passwordPolicy: PasswordPolicy; logger: Logger },
  typed: string,
  about: { email: string; name: string | null },
): Promise<void> {
  const password = normalPassword(typed) // as `hashPassword` hashes it
  const { minLength = 12, maxBytes = 1_024, requireComplexity = false } = ctx.passwordPolicy
  if (!password.isWellFormed()) refuse({ rule: 'malformed' })
  if ([...password].length < minLength) refuse({ rule: 'too_short', min: minLength })
  if (Buffer.byteLength(password) > maxBytes) refuse({ rule: 'too_long', max: maxBytes })
  const missing = requireComplexity ? missingClasses(password) : []
  if (missing.length > 0) refuse({ rule: 'missing_classes', missing })
  if (isGuessable(password, about)) refuse({ rule: 'too_common' })
  const rule = await askHost(ctx, password, about)
  if (rule !== null) refuse({ rule })
}

function refuse(details: { rule: string; [more: string]: unknown }): never {
  throw passwordRefusal(details)
}

/**
 * The classes of characters for `requireComplexity`. Letters and digits of every script count. Every other character is special, for
 * example a blank or an emoji.
 */
const classes = { lower: /\p{Ll}/u, upper: /\p{Lu}/u, digit: /\p{Nd}/u, special: /[^\p{L}\p{N}]/u }

function missingClasses(password: string): string[] {
  return Object.entries(classes)
    .filter(([, characterClass]) => !characterClass.test(password))
    .map(([name]) => name)
}
