#pragma once
struct hello {
  int n;
};
