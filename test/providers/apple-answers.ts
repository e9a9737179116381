/**
 * Answers of Sign in with Apple in the form that these pages document. A search of stored copies showed it on 24 November 2026; the pages
 * themselves were not opened. Values are made up.
 *
 * - https://developer.apple.com/documentation/signinwithapple/configuring-your-webpage-for-sign-in-with-apple (the form and its `user`)
 * - https://developer.apple.com/documentation/signinwithapplerestapi/tokenresponse
 * - https://developer.apple.com/documentation/signinwithapple/authenticating-users-with-sign-in-with-apple (the id_token)
 * - https://developer.apple.com/documentation/accountorganizationaldatasharing/creating-a-client-secret
 */
export const appleSubject = '000792.d71059495fa24644b94e4a644e2e3b4a.0638'
export const relayAddress = 'dpdcnf87nu@privaterelay.appleid.com'

/** Field `user` of the form, at the first login alone. */
export const appleUser = JSON.stringify({ name: { firstName: 'Ana', lastName: 'Souza' }, email: 'ana@example.com' })

export const appleTokens = {
  access_token: 'adg61bc6f2f3a4b2e8b7a5d3f4c1e2b3a.0.mxzs.gN4k953WIuRVUIqZ4LJl9A',
  token_type: 'Bearer',
  expires_in: 3600,
  refresh_token: 'rca7a5d3f4c1e2b3a61bc6f2f3a4b2e8b.0.mxzs.DOx5uRVUIqZ4LJl9AgN4k9',
}

/** Claims of the id_token besides `iss`, `aud`, `iat`, `exp` and `nonce`. */
export const appleClaims = {
  sub: appleSubject,
  at_hash: 'sOQEniPF5EBkeGjJCjDewA',
  email: 'ana@example.com',
  email_verified: true,
  auth_time: 1_772_366_390,
  nonce_supported: true,
}
