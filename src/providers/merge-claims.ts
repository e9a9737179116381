type Claims = Record<string, unknown>

/**
 * Merges the claims of a verified id_token with the claims of userinfo for one subject. Some providers put the address into only one of the
 * two documents. A userinfo claim overrides an id_token claim. `email` and `email_verified` always come from the same document, because the
 * flag of one document says nothing about an address in the other document. If userinfo has an email, userinfo is the source of both
 * claims.
 */
export function mergeClaims(idToken: Claims, userinfo: Claims): Claims {
  const { email: _email, email_verified: _flag, ...others } = { ...withoutNulls(idToken), ...withoutNulls(userinfo) }
  const { email, email_verified } = withoutNulls(userinfo)['email'] === undefined ? idToken : userinfo
  return { ...others, ...withoutNulls({ email, email_verified }) }
}

function withoutNulls(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined && value !== null))
}
