import { ConfigurationError } from '../errors'

/** What we call of it. */
export type WebAuthnPackage = Pick<typeof import('@simplewebauthn/server'), 'verifyAuthenticationResponse' | 'verifyRegistrationResponse'>

/** Where it is not installed, or not loadable. @throws ConfigurationError that says how to install it */
export function loadWebAuthnPackage(): WebAuthnPackage {
  try {
    return require('@simplewebauthn/server') as WebAuthnPackage // as its types say
  } catch (cause) {
    throw new ConfigurationError(
      'passkeysEnabled (AUTH_PASSKEYS_ENABLED) needs the package @simplewebauthn/server, which is missing or does not load; run `npm install @simplewebauthn/server`.',
      { cause },
    )
  }
}
