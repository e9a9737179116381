import { field } from './elements'
import type { FormState } from './form-state'
import { type Html, html } from './html'
import type { Reader } from './reader'

/** Returns the field for the account's password. If the account has the password of the sign-up, a hint says so. */
export function oldPasswordInput(reader: Reader, state: FormState, isOfSignup: boolean): Html {
  return field(reader, state, {
    name: 'password',
    label: reader.text('link.password'),
    type: 'password',
    autocomplete: 'current-password',
    isFirst: true,
    ...(isOfSignup && { hint: reader.text('link.chosen_at_signup') }),
  })
}

/**
 * Returns the button that removes the password. The button is the second button of the form, because the Enter key presses the first
 * button.
 */
export function forgotButton(reader: Reader): Html {
  return html`<button type="submit" name="forgot" value="1" class="second" formnovalidate>${reader.text('link.forgot')}</button>
`
}
