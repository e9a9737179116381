type Claims = Record<string, unknown>

/**
 * The claims of a verified id_token overlaid by those of userinfo, of the same subject: some providers put an address into one of them only.
 * `email` and `email_verified` come together from one document, userinfo first: the flag of one says nothing of the address of the other.
 */
export function mergeClaims(idToken: Claims, userinfo: Claims): Claims {
  const { email: _email, email_verified: _flag, ...others } = { ...withoutNulls(idToken), ...withoutNulls(userinfo) }
  const { email, email_verified } = withoutNulls(userinfo)['email'] === undefined ? idToken : userinfo
  return { ...others, ...withoutNulls({ email, email_verified }) }
}

function withoutNulls(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined && value !== null))
}
