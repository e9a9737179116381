import { describeError, type Logger } from '../core/logger'
import { withTimeout } from '../core/with-timeout'
import type { PasswordPolicy } from './password-types'

const askDeadlineMs = 3_000

/**
 * Calls the host's own rule, for example a check for breached passwords. Returns the name of the rule that rejects the password, or null.
 * If the rule throws or answers late, the function logs a warning and returns null, because a breach service that is down must not stop
 * every sign-up and password reset.
 */
export async function askHost(
  { passwordPolicy, logger }: { passwordPolicy: PasswordPolicy; logger: Logger },
  password: string,
  about: { email: string; name: string | null },
): Promise<string | null> {
  if (!passwordPolicy.check) return null
  try {
    // The async arrow turns an error that the check throws into a rejection.
    const answer = (async (): Promise<unknown> => passwordPolicy.check?.(password, { email: about.email, name: about.name }))()
    return ruleOf(await withTimeout(answer, askDeadlineMs, late), password)
  } catch (error) {
    logger.warn({ error: describeError(error) }, 'doorward: passwordPolicy.check failed; the password was accepted without it')
    return null
  }
}

function late(): Error {
  return Object.assign(new Error('passwordPolicy.check took too long.'), { code: 'TIMEOUT' })
}

/**
 * Returns the name of the rule that rejects the password; null if the host accepts the password. If the answer is not a valid name, returns
 * `refused`. The function never repeats such an answer, because it may be the password.
 */
function ruleOf(answer: unknown, password: string): string | null {
  if (answer === null || answer === undefined) return null
  const isName = typeof answer === 'string' && /^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(answer)
  return isName && !answer.toLowerCase().includes(password.toLowerCase()) ? answer : 'refused'
}
