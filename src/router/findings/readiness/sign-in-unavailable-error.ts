import { ServiceUnavailableError } from '../../../core/errors'
import { localized } from '../../../core/texts/localized'

/** The tables have an error that only the host can fix. An immediate retry does not help. */
export class SignInUnavailableError extends ServiceUnavailableError {
  static override readonly detail = localized('error.sign_in_unavailable')

  override readonly retryAfterSeconds = 60
  override readonly isLogged = true
}
