import { createHmac, type KeyObject, randomInt } from 'node:crypto'
import type { AuthContext } from '../../context'
import { constantTimeEqual } from '../../core/constant-time-equal'
import { isUnderAny } from '../../core/keys'
import { readTypedCode } from '../../core/typed-code'
import type { EmailLoginRecord } from '../../store/auth-store'

/** How many tries a code allows. */
export const mostTries = 5

/** Returns eight random digits. */
export function newCode(): string {
  return String(randomInt(100_000_000)).padStart(8, '0')
}

/**
 * Returns the keyed hash of a code. The store keeps only this hash. The hash needs a key, because eight digits are quickly found from a
 * plain hash.
 */
export function hashCode({ keys }: Pick<AuthContext, 'keys'>, id: string, code: string): string {
  return macOf(keys['email-login-code'][0], id, code)
}

/**
 * Returns true if the text is the code of this row. People may type the code in two groups. Call the function only after the try was
 * counted.
 */
export function isCodeOf({ keys }: Pick<AuthContext, 'keys'>, { id, codeHash }: EmailLoginRecord, typed: string): boolean {
  const code = readTypedCode(typed)
  if (codeHash === null || !/^\d{8}$/.test(code)) return false
  return isUnderAny(keys['email-login-code'], (key) => constantTimeEqual(macOf(key, id, code), codeHash))
}

function macOf(key: KeyObject, id: string, code: string): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([id, code]))
    .digest('hex')
}
