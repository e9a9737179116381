import { ConfigurationError } from '../errors'

/** The functions of the package that we call. */
export type WebAuthnPackage = Pick<typeof import('@simplewebauthn/server'), 'verifyAuthenticationResponse' | 'verifyRegistrationResponse'>

/**
 * Loads the package.
 * @throws ConfigurationError that says how to install it, if it is missing or does not load
 */
export function loadWebAuthnPackage(): WebAuthnPackage {
  try {
    return require('@simplewebauthn/server') as WebAuthnPackage // the package's own types say so
  } catch (cause) {
    throw new ConfigurationError(
      'passkeysEnabled (AUTH_PASSKEYS_ENABLED) needs the package @simplewebauthn/server, which is missing or does not load; run `npm install @simplewebauthn/server`.',
      { cause },
    )
  }
}
