import { ConfigurationError } from '../../core/errors'

/** The functions of the package that we call. */
export type WebAuthnPackage = Pick<typeof import('@simplewebauthn/server'), 'verifyAuthenticationResponse' | 'verifyRegistrationResponse'>

/**
 * Loads the package.
 * @throws ConfigurationError if the package is missing or does not load; the message says how to install it
 */
export function loadWebAuthnPackage(): WebAuthnPackage {
  try {
    return require('@simplewebauthn/server') as WebAuthnPackage // according to the package's types
  } catch (cause) {
    throw new ConfigurationError(
      'passkeysEnabled (AUTH_PASSKEYS_ENABLED) needs the package @simplewebauthn/server, which is missing or does not load; run `npm install @simplewebauthn/server`.',
      { cause },
    )
  }
}
