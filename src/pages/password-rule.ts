import type { AuthContext } from '../context'
import type { Reader } from '../http/html/reader'

/** Returns the rule of new passwords, so that a person knows it before the first try. */
export function passwordRule({ passwordPolicy }: Pick<AuthContext, 'passwordPolicy'>, reader: Reader): string {
  const { minLength = 12, requireComplexity = false } = passwordPolicy
  return reader.text(requireComplexity ? 'password.rule_complex' : 'password.rule', { min: String(minLength) })
}
