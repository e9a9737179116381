import { ValidationError } from '../errors'
import { localized } from '../texts/localized'
import { isTextKey } from '../texts/texts'

/** Returns the refusal of a password: its rule, and the sentence of that rule for people. A rule of the host's has a general one. */
export function passwordRefusal(details: { rule: string; [more: string]: unknown }): ValidationError {
  const key = `error.password.${details.rule}`
  return new ValidationError({ details, explains: isTextKey(key) ? localized(key, { min: String(details['min']) }) : anyRefusal })
}

/** Of a rule of the host's, and of text that is none. */
export const anyRefusal = localized('error.password_refused')
