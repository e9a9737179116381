import { type Html, html } from '../http/html'
import { field } from './elements'
import type { FormState } from './form-state'
import type { Reader } from './reader'

/** For the password of the account; where it is the one of the signup, a hint says so. */
export function passwordField(reader: Reader, state: FormState, isOfSignup: boolean): Html {
  return field(reader, state, {
    name: 'password',
    label: reader.text('link.password'),
    type: 'password',
    autocomplete: 'current-password',
    isFirst: true,
    ...(isOfSignup && { hint: reader.text('link.chosen_at_signup') }),
  })
}

/** Drops the password. Behind the other button, because the Enter key presses the first one. */
export function forgotButton(reader: Reader): Html {
  return html`<button type="submit" name="forgot" value="1" class="second" formnovalidate>${reader.text('link.forgot')}</button>
`
}
