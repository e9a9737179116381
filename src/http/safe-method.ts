/** Changes nothing by its meaning (RFC 9110 section 9.2.1). What is not listed, or not known, may. */
export function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}
