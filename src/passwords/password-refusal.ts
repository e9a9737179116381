import { ValidationError } from '../core/errors'
import { localized } from '../core/texts/localized'
import { isTextKey } from '../core/texts/texts'

/**
 * Returns the error for a rejected password, with the rule and a sentence for people. If the host's own rule rejects the password, the
 * sentence is general.
 */
export function passwordRefusal(details: { rule: string; [more: string]: unknown }): ValidationError {
  const key = `error.password.${details.rule}`
  return new ValidationError({ details, explains: isTextKey(key) ? localized(key, { min: String(details['min']) }) : anyRefusal })
}

/** The general sentence, for a rule that has no sentence of its own. */
export const anyRefusal = localized('error.password_refused')
