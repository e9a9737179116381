type Claims = Record<string, unknown>

/**
 * Merges the claims of a verified id_token with those of userinfo for the same subject, because some providers put an address into only one
 * of them. Userinfo overrides. `email` and `email_verified` come together from one document, userinfo first, because the flag of one
 * document says nothing about the address in the other.
 */
export function mergeClaims(idToken: Claims, userinfo: Claims): Claims {
  const { email: _email, email_verified: _flag, ...others } = { ...withoutNulls(idToken), ...withoutNulls(userinfo) }
  const { email, email_verified } = withoutNulls(userinfo)['email'] === undefined ? idToken : userinfo
  return { ...others, ...withoutNulls({ email, email_verified }) }
}

function withoutNulls(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined && value !== null))
}
