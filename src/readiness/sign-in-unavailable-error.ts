import { ServiceUnavailableError } from '../errors'

/** The tables have an error that only the host can mend: trying again at once is of no use. */
export class SignInUnavailableError extends ServiceUnavailableError {
  static override readonly detail = {
    'en-US': 'Sign-in is not available at the moment.',
    'pt-BR': 'O login não está disponível no momento.',
  }

  override readonly retryAfterSeconds = 60
  override readonly isLogged = true
}
