// Checks that two types are passed in the same way: equal sizes and kinds, regardless of names. An enum counts as an integer; opaque types are void.
#include <cstddef>
#include <cstdint>
#include <type_traits>

template <class T, class U> struct Same;

template <class T> constexpr bool is_whole = std::is_integral_v<T> || std::is_enum_v<T>;

template <class T> constexpr bool is_struct = std::is_class_v<T> || std::is_union_v<T>;

// The signedness of C enums is not defined for callers.
template <class T, class U> constexpr bool same_sign = std::is_enum_v<T> || std::is_enum_v<U> || std::is_signed_v<T> == std::is_signed_v<U>;

template <class T, class U> constexpr bool same_value() {
    if constexpr (std::is_pointer_v<T> && std::is_pointer_v<U>)
        return Same<std::remove_pointer_t<T>, std::remove_pointer_t<U>>::value;
    else if constexpr (is_whole<T> && is_whole<U>)
        return sizeof(T) == sizeof(U) && same_sign<T, U>;
    else if constexpr (std::is_void_v<T>)
        return std::is_void_v<U> || is_struct<U>; // pointed to, and opaque
    else if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<U>)
        return sizeof(T) == sizeof(U);
    else if constexpr (is_struct<T> && is_struct<U>)
        return sizeof(T) == sizeof(U) && alignof(T) == alignof(U);
    else
        return false;
}

template <class T, class U> struct Same {
    static constexpr bool value = std::is_const_v<T> == std::is_const_v<U> && same_value<std::remove_cv_t<T>, std::remove_cv_t<U>>();
};

template <class R, class... A, class S, class... B> struct Same<R(A...), S(B...)> {
    static constexpr bool all() {
        if constexpr (sizeof...(A) == sizeof...(B))
            return (Same<R, S>::value && ... && Same<A, B>::value);
        else
            return false;
    }
    static constexpr bool value = all();
};
