import { inTime } from '../in-time'
import { describeError, type Logger } from '../logger'
import type { PasswordPolicy } from './password-hasher'

const deadlineMs = 3_000

/**
 * Calls the host's own rule (a check for breached passwords, for example). Returns the name of the rule that refuses, or null. An error or
 * a late answer counts as null and is logged, because a breach service that is down must not stop every sign-up and reset.
 */
export async function askHost(
  { passwordPolicy, logger }: { passwordPolicy: PasswordPolicy; logger: Logger },
  password: string,
  about: { email: string; name: string | null },
): Promise<string | null> {
  if (!passwordPolicy.check) return null
  try {
    // An async arrow, so that a check that throws is handled like one that rejects.
    const answer = (async (): Promise<unknown> => passwordPolicy.check?.(password, { email: about.email, name: about.name }))()
    return ruleOf(await inTime(answer, deadlineMs, late), password)
  } catch (error) {
    logger.warn({ error: describeError(error) }, 'doorward: passwordPolicy.check failed; the password was accepted without it')
    return null
  }
}

function late(): Error {
  return Object.assign(new Error('passwordPolicy.check took too long.'), { code: 'TIMEOUT' })
}

/** Returns the name of a rule. Any other answer, above all the password itself, refuses the password and is not repeated. */
function ruleOf(answer: unknown, password: string): string | null {
  if (answer === null || answer === undefined) return null
  const isName = typeof answer === 'string' && /^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(answer)
  return isName && !answer.toLowerCase().includes(password.toLowerCase()) ? answer : 'refused'
}
